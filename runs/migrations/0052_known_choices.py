"""Checks for the choices of columns that had none, so that raw SQL writes no other value."""

from django.db import migrations, models

from benchlab.gentle_migrations import InSteps, in_steps


class Migration(InSteps):
    dependencies = [
        ("runs", "0051_run_by_campaign"),
    ]

    operations = in_steps(
        [
            migrations.AddConstraint(
                model_name="annotation",
                constraint=models.CheckConstraint(
                    condition=models.Q(("kind__in", ["note", "conclusion", "discussion"])),
                    name="annotation_kind_is_known",
                ),
            ),
            migrations.AddConstraint(
                model_name="change",
                constraint=models.CheckConstraint(
                    condition=models.Q(("kind__in", ["step", "alarm"])), name="change_kind_is_known"
                ),
            ),
            migrations.AddConstraint(
                model_name="discrepancy",
                constraint=models.CheckConstraint(
                    condition=models.Q(
                        (
                            "kind__in",
                            [
                                "ratio",
                                "median",
                                "sum",
                                "other_table",
                                "repeated_row",
                                "not_measured",
                                "text",
                            ],
                        )
                    ),
                    name="discrepancy_kind_is_known",
                ),
            ),
            migrations.AddConstraint(
                model_name="discrepancy",
                constraint=models.CheckConstraint(
                    condition=models.Q(("weight__in", [1, 2, 3, 4])),
                    name="discrepancy_weight_is_known",
                ),
            ),
            migrations.AddConstraint(
                model_name="invitation",
                constraint=models.CheckConstraint(
                    condition=models.Q(("role__in", ["viewer", "operator", "maintainer"])),
                    name="invitation_role_is_known",
                ),
            ),
            migrations.AddConstraint(
                model_name="measurement",
                constraint=models.CheckConstraint(
                    condition=models.Q(("statistic__in", ["single", "median", "mean"])),
                    name="measurement_statistic_is_known",
                ),
            ),
            migrations.AddConstraint(
                model_name="membership",
                constraint=models.CheckConstraint(
                    condition=models.Q(("role__in", ["viewer", "operator", "maintainer"])),
                    name="membership_role_is_known",
                ),
            ),
            migrations.AddConstraint(
                model_name="metric",
                constraint=models.CheckConstraint(
                    condition=models.Q(("direction__in", ["higher", "lower", "neutral"])),
                    name="metric_direction_is_known",
                ),
            ),
            migrations.AddConstraint(
                model_name="printedfigure",
                constraint=models.CheckConstraint(
                    condition=models.Q(("kind__in", ["measured", "derived", "not_measured"])),
                    name="figure_kind_is_known",
                ),
            ),
            migrations.AddConstraint(
                model_name="printedfigure",
                constraint=models.CheckConstraint(
                    condition=models.Q(("statistic__in", ["single", "median", "mean", ""])),
                    name="figure_statistic_is_known",
                ),
            ),
            migrations.AddConstraint(
                model_name="publishedtable",
                constraint=models.CheckConstraint(
                    condition=models.Q(("statistic__in", ["single", "median", "mean", ""])),
                    name="table_statistic_is_known",
                ),
            ),
            migrations.AddConstraint(
                model_name="run",
                constraint=models.CheckConstraint(
                    condition=models.Q(("validity__in", ["valid", "doubtful", "invalid", ""])),
                    name="run_validity_is_known",
                ),
            ),
            migrations.AddConstraint(
                model_name="schedule",
                constraint=models.CheckConstraint(
                    condition=models.Q(("kind__in", ["times", "installation"])),
                    name="schedule_kind_is_known",
                ),
            ),
            migrations.AddConstraint(
                model_name="topology",
                constraint=models.CheckConstraint(
                    condition=models.Q(
                        (
                            "kind__in",
                            [
                                "single",
                                "client",
                                "streaming",
                                "logical",
                                "fdw",
                                "sharded",
                                "pooled",
                                "varied",
                            ],
                        )
                    ),
                    name="topology_kind_is_known",
                ),
            ),
            migrations.AddConstraint(
                model_name="topologynode",
                constraint=models.CheckConstraint(
                    condition=models.Q(("role__in", ["database", "load_generator", "clusters"])),
                    name="node_role_is_known",
                ),
            ),
        ]
    )
