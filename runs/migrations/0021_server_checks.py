"""Checks of servers that somebody asked for, and which server has an open one."""

import django.db.models.deletion
import uuid
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0020_bisections'),
    ]

    operations = [
        migrations.CreateModel(
            name='ServerCheck',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('kind', models.CharField(choices=[('host_key', 'Host Key'), ('edit', 'Edit'), ('inspection', 'Inspection'), ('preflight', 'Preflight'), ('campaign', 'Campaign')], max_length=12)),
                ('state', models.CharField(choices=[('waiting', 'Waiting'), ('active', 'Active'), ('done', 'Done'), ('failed', 'Failed')], default='waiting', max_length=10)),
                ('given', models.JSONField(default=dict)),
                ('language', models.CharField(blank=True, max_length=12)),
                ('asked_by', models.CharField(blank=True, max_length=150)),
                ('by_way_of', models.CharField(blank=True, max_length=200)),
                ('asked_at', models.DateTimeField(auto_now_add=True)),
                ('deadline', models.DateTimeField()),
                ('ended_at', models.DateTimeField(null=True)),
                ('answer', models.JSONField(null=True)),
                ('code', models.CharField(blank=True, max_length=60)),
                ('message', models.TextField(blank=True)),
                ('remedy', models.TextField(blank=True)),
                ('server', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='checks', to='runs.server')),
            ],
            options={
                'ordering': ['-asked_at'],
            },
        ),
        migrations.CreateModel(
            name='CheckedServer',
            fields=[
                ('server', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, serialize=False, to='runs.server')),
                ('server_check', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='machines', to='runs.servercheck')),
            ],
        ),
        migrations.AddIndex(
            model_name='servercheck',
            index=models.Index(condition=models.Q(('state__in', ['waiting', 'active'])), fields=['deadline'], name='server_check_open'),
        ),
        migrations.AddIndex(
            model_name='servercheck',
            index=models.Index(fields=['asked_at'], name='server_check_by_age'),
        ),
        migrations.AddConstraint(
            model_name='servercheck',
            constraint=models.CheckConstraint(condition=models.Q(('kind__in', ['host_key', 'edit', 'inspection', 'preflight', 'campaign'])), name='server_check_kind_is_known'),
        ),
        migrations.AddConstraint(
            model_name='servercheck',
            constraint=models.CheckConstraint(condition=models.Q(('state__in', ['waiting', 'active', 'done', 'failed'])), name='server_check_state_is_known'),
        ),
    ]
