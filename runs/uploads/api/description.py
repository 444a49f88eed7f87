"""Uploads in OpenAPI: the shape of a run, and examples. The checks themselves are in `runs`."""

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter
from rest_framework import serializers

from runs.models import Run
from runs.shared.api import upload_limits
from runs.shared.api.examples import EXAMPLES
from runs.uploads.api.measured_values import DIRECTIONS
from runs.uploads.api.runs import STATUSES

Shape = serializers.Serializer[Any]


class UploadedMeasurementSerializer(Shape):
    """A number: its value, or the samples whose median it is."""

    metric = serializers.SlugField(max_length=80)
    value = serializers.FloatField(required=False)
    samples = serializers.ListField(
        child=serializers.FloatField(),
        required=False,
        help_text="Stored as their median.",
    )
    unit = serializers.CharField(
        required=False, help_text="As the metric's, where it is known."
    )
    direction = serializers.ChoiceField(
        DIRECTIONS,
        required=False,
        help_text="Which way is better; needed of a new metric.",
    )


class UploadedSeriesSerializer(Shape):
    """Values at a fixed interval, null where there is none; seconds from the start of measuring."""

    name = serializers.SlugField(max_length=80)
    unit = serializers.CharField(required=False)
    start = serializers.FloatField(default=0)
    interval = serializers.FloatField(default=1)
    values = serializers.ListField(
        child=serializers.FloatField(allow_null=True),
        max_length=upload_limits.MOST_POINTS,
    )


class UploadedHardwareSerializer(Shape):
    """What is known of a machine; stored once per content. A slug may stand in its place."""

    name = serializers.CharField(required=False)
    cpu_model = serializers.CharField(required=False)
    sockets = serializers.IntegerField(required=False)
    cores = serializers.IntegerField(required=False)
    threads = serializers.IntegerField(required=False)
    memory_bytes = serializers.IntegerField(required=False)
    virtualization = serializers.CharField(required=False)
    facts = serializers.DictField(required=False)


class UploadedEnvironmentSerializer(Shape):
    """The system; stored once per content. A slug may stand in its place."""

    os_name = serializers.CharField(required=False)
    kernel = serializers.CharField(required=False)
    architecture = serializers.CharField(required=False)
    facts = serializers.DictField(required=False)


class UploadedPostgreSQLSerializer(Shape):
    """What was measured."""

    version = serializers.CharField(required=False)
    settings = serializers.DictField(child=serializers.CharField(), required=False)


class UploadedToolSerializer(Shape):
    """The load generator. Its name may be given instead."""

    name = serializers.CharField()
    version = serializers.CharField(required=False)


class UploadedWorkloadSerializer(Shape):
    """How the load was put on; what is unusual of it is a level. Raw output says most of it."""

    script = serializers.CharField(required=False, max_length=100)
    query_mode = serializers.CharField(
        required=False, help_text="simple, extended or prepared."
    )
    connection = serializers.CharField(
        required=False, help_text="kept, or each-transaction."
    )
    rate = serializers.FloatField(
        required=False, help_text="Transactions a second; 0: no limit."
    )
    max_tries = serializers.IntegerField(required=False)


class UploadedMergeBaseSerializer(Shape):
    """Where a commit left the branch that it is compared with."""

    sha = serializers.CharField(max_length=64)
    committed_at = serializers.DateTimeField(required=False)


class UploadedRevisionSerializer(Shape):
    """The commit that was measured."""

    sha = serializers.CharField(max_length=64)
    ref = serializers.CharField(required=False)
    url = serializers.URLField(required=False)
    committed_at = serializers.DateTimeField(required=False)
    parents = serializers.ListField(child=serializers.CharField(), required=False)
    subject = serializers.CharField(
        required=False, max_length=200, help_text="The first line of its message."
    )
    author = serializers.CharField(
        required=False, max_length=100, help_text="A name, without an address."
    )
    merge_base = UploadedMergeBaseSerializer(
        required=False,
        help_text="Needed where commits between it and this one are not measured.",
    )


class UploadedRunSerializer(Shape):
    """A run that was measured elsewhere, with its figures, or with `raw` in their place."""

    campaign = serializers.SlugField(max_length=120, help_text="Made at first sight.")
    campaign_title = serializers.CharField(required=False)
    scenario = serializers.SlugField(
        required=False, help_text="Needed where the campaign is new."
    )
    levels = serializers.DictField(
        required=False, help_text="What was varied, and the version."
    )
    workload = UploadedWorkloadSerializer(required=False)
    started_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(required=False)
    status = serializers.ChoiceField(
        STATUSES, required=False, help_text="Needed, except with `raw`."
    )
    reason = serializers.CharField(required=False, help_text="Why it did not finish.")
    server = serializers.SlugField(required=False)
    hardware = UploadedHardwareSerializer(required=False)
    environment = UploadedEnvironmentSerializer(required=False)
    postgresql = UploadedPostgreSQLSerializer(required=False)
    configuration = serializers.SlugField(required=False)
    tool = UploadedToolSerializer(required=False)
    measurements = UploadedMeasurementSerializer(many=True, required=False)
    series = UploadedSeriesSerializer(many=True, required=False)
    revision = UploadedRevisionSerializer(required=False)
    labels = serializers.DictField(child=serializers.CharField(), required=False)
    external_id = serializers.CharField(
        required=False, help_text="Unique within the campaign."
    )
    job = serializers.CharField(
        required=False,
        max_length=200,
        help_text=(
            "The job that measured: runs with the same text share what it did to all of them. "
            "Without it, that is a job for each revision. It becomes the label `job`."
        ),
    )
    round = serializers.IntegerField(
        required=False,
        min_value=0,
        help_text="Runs of one job with the same round were made together, in any order.",
    )
    raw = serializers.CharField(
        required=False,
        help_text="What the tool printed; or an object of stdout, stderr, exit_status and logs.",
    )


# Fields of a run in which a text may stand for an object; of raw output the object has its files.
OR_TEXT = ("hardware", "environment", "tool")
RAW_FILES = {
    "type": "object",
    "properties": {
        "stdout": {"type": "string"},
        "stderr": {"type": "string"},
        "exit_status": {"oneOf": [{"type": "integer"}, {"type": "string"}]},
    },
    "additionalProperties": {"type": "string"},
}


def texts_stand_for_objects(result: dict[str, Any], **_of: Any) -> dict[str, Any]:
    """Add to the finished schema what no serializer says: a text, or an object."""
    run = result["components"]["schemas"].get("UploadedRun")
    if run:
        fields = run["properties"]
        for name in OR_TEXT:
            fields[name] = {"oneOf": [{"type": "string"}, fields[name]]}
        text = fields["raw"].pop("description")
        fields["raw"] = {"oneOf": [{"type": "string"}, RAW_FILES], "description": text}
    return result


class UploadedFilesSerializer(Shape):
    """The same as files: `run` has the JSON of the other fields."""

    run = serializers.CharField()
    stdout = serializers.FileField(required=False)
    stderr = serializers.FileField(required=False)
    exit_status = serializers.CharField(required=False)
    log = serializers.FileField(required=False)


class UploadedBatchSerializer(Shape):
    """Runs that are stored together or not at all."""

    runs = UploadedRunSerializer(
        many=True, help_text=f"At most {upload_limits.MOST_RUNS}."
    )


class StoredRunSerializer(Shape):
    """What became of a run. A repeat of the same cell gets the next number."""

    id = serializers.IntegerField()
    url = serializers.URLField(help_text="The page.")
    api_url = serializers.URLField()
    campaign = serializers.CharField()
    state = serializers.ChoiceField(Run.State.choices)
    code = serializers.CharField(help_text="Why it did not finish; empty where it did.")
    message = serializers.CharField()
    repeat = serializers.IntegerField()
    stored_before = serializers.BooleanField(
        help_text="The text was sent before: this is the run that it was then."
    )


class StoredBatchSerializer(Shape):
    """What became of the runs, in their order."""

    runs = StoredRunSerializer(many=True)


RUN, RAW, STORED = (EXAMPLES[name] for name in ("run", "raw", "stored"))
ONCE = OpenApiParameter(
    "Idempotency-Key",
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    description="The same body under the same key is stored once, and answered alike with 200.",
)
ONE: dict[str, Any] = {
    "operation_id": "uploads_create",
    "parameters": [ONCE],
    "request": {
        "application/json": UploadedRunSerializer,
        "multipart/form-data": UploadedFilesSerializer,
    },
    "responses": {201: StoredRunSerializer, 200: StoredRunSerializer},
    "examples": [
        OpenApiExample(
            "Figures", RUN, request_only=True, media_type="application/json"
        ),
        OpenApiExample(
            "Raw output", RAW, request_only=True, media_type="application/json"
        ),
        OpenApiExample("Stored", STORED, response_only=True, status_codes=["201"]),
    ],
}
BATCH: dict[str, Any] = {
    "operation_id": "uploads_batch_create",
    "parameters": [ONCE],
    "request": {"application/json": UploadedBatchSerializer},
    "responses": {201: StoredBatchSerializer, 200: StoredBatchSerializer},
    "examples": [
        OpenApiExample("Two runs", {"runs": [RUN, RUN]}, request_only=True),
        OpenApiExample(
            "Stored", {"runs": [STORED]}, response_only=True, status_codes=["201"]
        ),
    ],
}
