"""Treatments of campaigns, mails about absent uploads, and indexes for pages at scale."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0002_archive_and_uploads'),
    ]

    operations = [
        migrations.AddField(
            model_name="campaign",
            name="treatment",
            field=models.JSONField(default=dict),
        ),
        migrations.AddField(
            model_name="campaign",
            name="missing_mailed_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="server",
            name="sweep_after",
            field=models.DateTimeField(null=True),
        ),
        migrations.AlterField(
            model_name='cell',
            name='campaign',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='cells', to='runs.campaign'),
        ),
        migrations.AlterField(
            model_name='cellsummary',
            name='cell',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='summaries', to='runs.cell'),
        ),
        migrations.AlterField(
            model_name='measurement',
            name='run',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='measurements', to='runs.run'),
        ),
        migrations.AlterField(
            model_name='run',
            name='campaign',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='runs', to='runs.campaign'),
        ),
        migrations.AlterField(
            model_name='run',
            name='cell',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='runs', to='runs.cell'),
        ),
        migrations.AlterField(
            model_name='series',
            name='run',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='series', to='runs.run'),
        ),
        migrations.AddIndex(
            model_name='cell',
            index=models.Index(fields=['version', 'campaign'], name='cell_by_version', opclasses=['varchar_pattern_ops', 'int8_ops']),
        ),
        migrations.AddIndex(
            model_name='run',
            index=models.Index(fields=['campaign', 'hardware'], name='run_by_campaign_hardware'),
        ),
        migrations.AddIndex(
            model_name='run',
            index=models.Index(fields=['campaign', 'environment'], name='run_by_campaign_environment'),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(fields=["campaign", "-queued_at"], name="run_by_campaign_queued"),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("origin", "executed"), ("state", "finished")),
                fields=["id"],
                name="run_executed_here",
            ),
        ),
    ]
