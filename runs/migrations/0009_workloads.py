"""Workloads: people's own pgbench scripts, and the cells that ran them."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0008_factors"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Workload',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('slug', models.SlugField(max_length=80, unique=True)),
                ('name', models.CharField(max_length=200, verbose_name='name')),
                ('description', models.TextField(blank=True, verbose_name='description')),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['name', 'pk'],
            },
        ),
        migrations.CreateModel(
            name='WorkloadVersion',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField()),
                ('scripts', models.JSONField()),
                ('variables', models.JSONField(default=dict)),
                ('init_options', models.CharField(blank=True, max_length=200, verbose_name='options of pgbench -i')),
                ('init_sql', models.TextField(blank=True, verbose_name='SQL before the load')),
                ('has_own_tables', models.BooleanField(default=False, verbose_name='own tables')),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL)),
                ('workload', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='versions', to='runs.workload')),
            ],
            options={
                'ordering': ['workload', '-number'],
            },
        ),
        migrations.AddField(
            model_name='cell',
            name='workload_version',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='cells', to='runs.workloadversion'),
        ),
        migrations.AddConstraint(
            model_name='workloadversion',
            constraint=models.UniqueConstraint(fields=('workload', 'number'), name='workload_version_once'),
        ),
    ]
