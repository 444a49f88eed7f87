"""Webhooks to chats have a kind: what is sent has the shape of their product."""

from django.db import migrations, models

KINDS = ["signed", "slack", "teams", "mattermost", "discord"]


class Migration(migrations.Migration):
    dependencies = [("runs", "0092_loads")]

    operations = [
        migrations.AddField(
            model_name="webhook",
            name="kind",
            field=models.CharField(
                choices=[
                    ("signed", "JSON, signed"),
                    ("slack", "Slack"),
                    ("teams", "Microsoft Teams"),
                    ("mattermost", "Mattermost"),
                    ("discord", "Discord"),
                ],
                db_default="signed",
                default="signed",
                max_length=12,
            ),
        ),
        migrations.AddConstraint(
            model_name="webhook",
            constraint=models.CheckConstraint(
                condition=models.Q(kind__in=KINDS), name="webhook_kind_is_known"
            ),
        ),
    ]
