"""Campaigns with several configurations, and campaigns that repeat a published one."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0007_evidence")]

    operations = [
        migrations.AlterField(
            model_name="topologynode",
            name="role",
            field=models.CharField(
                choices=[
                    ("database", "database"),
                    ("load_generator", "load generator"),
                    ("clusters", "further clusters"),
                ],
                max_length=20,
            ),
        ),
        migrations.AddField(
            model_name="campaign",
            name="reproduces",
            field=models.SlugField(blank=True, max_length=120),
        ),
        migrations.AlterField(
            model_name="cell",
            name="key",
            field=models.CharField(max_length=1000),
        ),
        migrations.CreateModel(
            name="CampaignConfiguration",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("ordinal", models.PositiveSmallIntegerField()),
                (
                    "campaign",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="configurations",
                        to="runs.campaign",
                    ),
                ),
                (
                    "configuration",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="runs.configuration",
                    ),
                ),
                (
                    "revision",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        to="runs.configurationrevision",
                    ),
                ),
            ],
            options={
                "ordering": ["campaign", "ordinal"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("campaign", "configuration"), name="campaign_configuration_once"
                    )
                ],
            },
        ),
    ]
