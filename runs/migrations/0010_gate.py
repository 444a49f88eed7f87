"""A commit may be on several branches."""
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0009_workloads'),
    ]

    operations = [
        migrations.CreateModel(
            name='RevisionRef',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('ref', models.CharField(max_length=200, verbose_name='branch or tag')),
                ('revision', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='further_refs', to='runs.revision')),
            ],
            options={
                'ordering': ['revision', 'ref'],
                'constraints': [models.UniqueConstraint(fields=('revision', 'ref'), name='ref_once')],
            },
        ),
    ]
