"""Hosts that join, their copies of secrets, and the release that looks after the database."""


import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0093_webhook_kinds'),
    ]

    operations = [
        migrations.AddField(
            model_name='instance',
            name='release',
            field=models.CharField(blank=True, db_default='', default='', max_length=40),
        ),
        migrations.CreateModel(
            name='WorkerHost',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(blank=True, max_length=100, verbose_name='name')),
                ('prefix', models.CharField(max_length=16, unique=True)),
                ('secret_hash', models.CharField(max_length=64)),
                ('invited_at', models.DateTimeField(auto_now_add=True)),
                ('invited_by', models.CharField(blank=True, max_length=150)),
                ('expires_at', models.DateTimeField(verbose_name='expires')),
                ('may_log_in', models.BooleanField(default=False)),
                ('is_trusted_network', models.BooleanField(default=False)),
                ('sites', models.CharField(blank=True, max_length=500)),
                ('database', models.CharField(blank=True, max_length=300)),
                ('redis', models.CharField(blank=True, max_length=300)),
                ('key_encrypted', models.BinaryField(null=True)),
                ('role', models.CharField(blank=True, max_length=63)),
                ('release', models.CharField(blank=True, max_length=40)),
                ('joined_at', models.DateTimeField(null=True)),
                ('left_at', models.DateTimeField(null=True)),
            ],
            options={
                'ordering': ['pk'],
                'constraints': [models.UniqueConstraint(condition=models.Q(('joined_at__isnull', False), ('left_at', None)), fields=('name',), name='one_host_of_a_name'), models.CheckConstraint(condition=models.Q(('joined_at', None), ('key_encrypted__isnull', False), _connector='OR'), name='joined_host_has_a_key')],
            },
        ),
        migrations.CreateModel(
            name='HostSecret',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('secret_encrypted', models.BinaryField()),
                ('load', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, to='runs.load')),
                ('ssh_key', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, to='runs.sshkey')),
                ('host', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='secrets', to='runs.workerhost')),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('load__isnull', False), ('ssh_key', None)), models.Q(('load', None), ('ssh_key__isnull', False)), _connector='OR'), name='host_secret_of_one'), models.UniqueConstraint(fields=('host', 'ssh_key'), name='host_secret_of_key_once'), models.UniqueConstraint(fields=('host', 'load'), name='host_secret_of_load_once')],
            },
        ),
    ]
