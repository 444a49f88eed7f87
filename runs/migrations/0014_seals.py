"""Seals of runs, and runs that were withdrawn."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0013_scale'),
    ]

    operations = [
        migrations.CreateModel(
            name='Seal',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveBigIntegerField()),
                ('kind', models.CharField(choices=[('sealed', 'sealed'), ('amended', 'amended'), ('withdrawn', 'withdrawn'), ('restored', 'restored')], max_length=10)),
                ('run', models.BigIntegerField(db_index=True)),
                ('at', models.DateTimeField()),
                ('reason', models.TextField(blank=True)),
                ('content', models.TextField(blank=True)),
                ('hash', models.BinaryField(max_length=32)),
                ('key', models.BinaryField(max_length=32)),
                ('signature', models.BinaryField(max_length=64)),
            ],
            options={
                'ordering': ['project', 'number'],
            },
        ),
        migrations.CreateModel(
            name='SealRequest',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('sealed', 'sealed'), ('amended', 'amended'), ('withdrawn', 'withdrawn'), ('restored', 'restored')], default='sealed', max_length=10)),
                ('run', models.BigIntegerField()),
                ('reason', models.TextField(blank=True, db_default='')),
                ('at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'ordering': ['pk'],
            },
        ),
        migrations.RemoveConstraint(
            model_name='run',
            name='run_state_is_known',
        ),
        migrations.RemoveConstraint(
            model_name='runevent',
            name='event_from_state_is_known',
        ),
        migrations.RemoveConstraint(
            model_name='runevent',
            name='event_to_state_is_known',
        ),
        migrations.AlterField(
            model_name='run',
            name='state',
            field=models.CharField(choices=[('queued', 'queued'), ('claimed', 'claimed'), ('preparing', 'preparing'), ('measuring', 'measuring'), ('collecting', 'collecting'), ('finished', 'finished'), ('failed', 'failed'), ('errored', 'error in BenchLab'), ('cancelled', 'cancelled'), ('lost', 'lost its worker'), ('withdrawn', 'withdrawn')], default='queued', max_length=12),
        ),
        migrations.AddConstraint(
            model_name='run',
            constraint=models.CheckConstraint(condition=models.Q(('state__in', ['queued', 'claimed', 'preparing', 'measuring', 'collecting', 'finished', 'failed', 'errored', 'cancelled', 'lost', 'withdrawn'])), name='run_state_is_known'),
        ),
        migrations.AddConstraint(
            model_name='runevent',
            constraint=models.CheckConstraint(condition=models.Q(('from_state__in', ['queued', 'claimed', 'preparing', 'measuring', 'collecting', 'finished', 'failed', 'errored', 'cancelled', 'lost', 'withdrawn', ''])), name='event_from_state_is_known'),
        ),
        migrations.AddConstraint(
            model_name='runevent',
            constraint=models.CheckConstraint(condition=models.Q(('to_state__in', ['queued', 'claimed', 'preparing', 'measuring', 'collecting', 'finished', 'failed', 'errored', 'cancelled', 'lost', 'withdrawn', ''])), name='event_to_state_is_known'),
        ),
        migrations.AddField(
            model_name='seal',
            name='project',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.project'),
        ),
        migrations.AddConstraint(
            model_name='sealrequest',
            constraint=models.CheckConstraint(condition=models.Q(('kind__in', ['sealed', 'amended', 'withdrawn', 'restored'])), name='seal_request_kind_is_known'),
        ),
        migrations.AddConstraint(
            model_name='seal',
            constraint=models.CheckConstraint(condition=models.Q(('kind__in', ['sealed', 'amended', 'withdrawn', 'restored'])), name='seal_kind_is_known'),
        ),
        migrations.AddConstraint(
            model_name='seal',
            constraint=models.UniqueConstraint(fields=('project', 'number'), name='seal_once_a_number'),
        ),
        # Whatever has finished until now is sealed as it stands.
        migrations.RunSQL(
            "INSERT INTO runs_sealrequest (kind, run) SELECT 'sealed', id FROM runs_run"
            " WHERE state = 'finished' AND origin <> 'published' ORDER BY id",
            migrations.RunSQL.noop,
        ),
    ]
