"""Provenance of published figures, weights of discrepancies, and a search with ranking."""
import django.contrib.postgres.indexes
import django.contrib.postgres.search
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0010_gate'),
    ]

    operations = [
        migrations.RemoveField(
            model_name='publishedtable',
            name='search_text',
        ),
        migrations.AddField(
            model_name='discrepancy',
            name='figures',
            field=models.ManyToManyField(related_name='disputed', to='runs.printedfigure'),
        ),
        migrations.AddField(
            model_name='discrepancy',
            name='weight',
            field=models.PositiveSmallIntegerField(choices=[(1, 'wrong conclusion'), (2, 'wrong figure'), (3, 'rounding'), (4, 'wording')], default=2),
        ),
        migrations.AddField(
            model_name='printedfigure',
            name='exact',
            field=models.BooleanField(default=True),
        ),
        migrations.AddField(
            model_name='printedfigure',
            name='n',
            field=models.PositiveIntegerField(null=True),
        ),
        migrations.AddField(
            model_name='printedfigure',
            name='statistic',
            field=models.CharField(blank=True, choices=[('single', 'single value'), ('median', 'median'), ('mean', 'mean')], max_length=10),
        ),
        migrations.AddField(
            model_name='publishedtable',
            name='repeats',
            field=models.PositiveIntegerField(null=True, verbose_name='repeats'),
        ),
        migrations.AddField(
            model_name='publishedtable',
            name='search',
            field=django.contrib.postgres.search.SearchVectorField(null=True),
        ),
        migrations.AddField(
            model_name='publishedtable',
            name='statistic',
            field=models.CharField(blank=True, choices=[('single', 'single value'), ('median', 'median'), ('mean', 'mean')], max_length=10),
        ),
        migrations.AddField(
            model_name='publishedtable',
            name='versions',
            field=models.JSONField(default=list),
        ),
        migrations.AddField(
            model_name='source',
            name='corrections',
            field=models.JSONField(default=list),
        ),
        migrations.AddField(
            model_name='source',
            name='data_version',
            field=models.CharField(blank=True, max_length=20, verbose_name='version of the data'),
        ),
        migrations.AddField(
            model_name='source',
            name='transcribed_on',
            field=models.DateField(null=True, verbose_name='transcribed on'),
        ),
        migrations.AddIndex(
            model_name='publishedtable',
            index=django.contrib.postgres.indexes.GinIndex(fields=['search'], name='published_table_search'),
        ),
    ]
