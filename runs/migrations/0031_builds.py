"""Build commits on servers, where an administrator allows it."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0030_bisection_answers'),
    ]

    operations = [
        migrations.AddField(
            model_name='bisection',
            name='is_building',
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name='server',
            name='build_from',
            field=models.CharField(blank=True, db_default='', default='', max_length=255),
        ),
        migrations.AddField(
            model_name='server',
            name='build_options',
            field=models.JSONField(db_default=[], default=list),
        ),
        migrations.CreateModel(
            name='Build',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('commit', models.CharField(max_length=64)),
                ('bindir', models.CharField(max_length=500)),
                ('options', models.JSONField(default=list)),
                ('state', models.CharField(choices=[('waiting', 'waiting'), ('building', 'being built'), ('done', 'built'), ('failed', 'failed'), ('cancelled', 'cancelled'), ('removed', 'removed')], default='waiting', max_length=10)),
                ('code', models.CharField(blank=True, max_length=60)),
                ('message', models.TextField(blank=True)),
                ('log', models.TextField(blank=True)),
                ('asked_at', models.DateTimeField(auto_now_add=True)),
                ('started_at', models.DateTimeField(null=True)),
                ('looked_at', models.DateTimeField(null=True)),
                ('ended_at', models.DateTimeField(null=True)),
                ('server', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='builds', to='runs.server')),
            ],
            options={
                'ordering': ['-pk'],
                'constraints': [models.CheckConstraint(condition=models.Q(('state__in', ['waiting', 'building', 'done', 'failed', 'cancelled', 'removed'])), name='build_state_is_known'), models.UniqueConstraint(condition=models.Q(('state__in', ['waiting', 'building', 'done'])), fields=('server', 'commit'), name='build_once'), models.UniqueConstraint(condition=models.Q(('state', 'building')), fields=('server',), name='build_one_at_a_time')],
            },
        ),
    ]
