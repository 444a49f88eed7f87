"""Let the columns of states have known values only, whoever writes them."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0003_treatments_and_indexes")]

    operations = [
        migrations.AddConstraint(
            model_name="campaign",
            constraint=models.CheckConstraint(condition=models.Q(("state__in", ["queued", "running", "finished", "incomplete", "cancelled"])), name="campaign_state_is_known"),
        ),
        migrations.AddConstraint(
            model_name="campaign",
            constraint=models.CheckConstraint(condition=models.Q(("origin__in", ["executed", "published", "uploaded"])), name="campaign_origin_is_known"),
        ),
        migrations.AddConstraint(
            model_name="change",
            constraint=models.CheckConstraint(condition=models.Q(("decision__in", ["open", "confirmed", "dismissed", "refuted"])), name="change_decision_is_known"),
        ),
        migrations.AddConstraint(
            model_name="configuration",
            constraint=models.CheckConstraint(condition=models.Q(("origin__in", ["built_in", "published", "own"])), name="configuration_origin_is_known"),
        ),
        migrations.AddConstraint(
            model_name="run",
            constraint=models.CheckConstraint(condition=models.Q(("state__in", ["queued", "claimed", "preparing", "measuring", "collecting", "finished", "failed", "errored", "cancelled", "lost"])), name="run_state_is_known"),
        ),
        migrations.AddConstraint(
            model_name="run",
            constraint=models.CheckConstraint(condition=models.Q(("origin__in", ["executed", "published", "uploaded"])), name="run_origin_is_known"),
        ),
        migrations.AddConstraint(
            model_name="runevent",
            constraint=models.CheckConstraint(condition=models.Q(("from_state__in", ["queued", "claimed", "preparing", "measuring", "collecting", "finished", "failed", "errored", "cancelled", "lost", ""])), name="event_from_state_is_known"),
        ),
        migrations.AddConstraint(
            model_name="runevent",
            constraint=models.CheckConstraint(condition=models.Q(("to_state__in", ["queued", "claimed", "preparing", "measuring", "collecting", "finished", "failed", "errored", "cancelled", "lost", ""])), name="event_to_state_is_known"),
        ),
        migrations.AddConstraint(
            model_name="server",
            constraint=models.CheckConstraint(condition=models.Q(("state__in", ["unconfirmed", "ready", "unreachable", "refused"])), name="server_state_is_known"),
        ),
        migrations.AddConstraint(
            model_name="webhookdelivery",
            constraint=models.CheckConstraint(condition=models.Q(("state__in", ["waiting", "delivered", "given_up"])), name="delivery_state_is_known"),
        ),
    ]
