"""Forms of loads: what somebody brings, and on what it is measured."""

from typing import Any, cast

from django import forms
from django.contrib.auth.models import User
from django.core.files.uploadedfile import UploadedFile
from django.utils.translation import gettext_lazy as _

from runs.access.selectors.permission_table import Right
from runs.loads.services import dumps, loads
from runs.loads.services.loads import Asked, Brought
from runs.models import Installation, Server
from runs.scenarios import statements
from runs.shared import pages
from runs.tools import packed_files

CODE = {"class": "code", "spellcheck": "false", "autocomplete": "off", "wrap": "off"}
# What is written into a form; a file may be larger.
MOST_WRITTEN = 1_000_000
WARM, COLD = "warm", "cold"
CACHES = ((WARM, _("warm")), (COLD, _("cold")))


class TextFile(forms.FileField):
    """An uploaded text. A log in another encoding than UTF-8 is read as Latin-1."""

    def __init__(self, label: Any, most: int, help_text: Any = "") -> None:
        super().__init__(label=label, required=False, help_text=help_text)
        self.most = most

    def clean(self, data: Any, initial: Any = None) -> str:
        """Its text, empty without a file."""
        uploaded: UploadedFile[bytes] | None = super().clean(data, initial)
        if uploaded is None:
            return ""
        if (uploaded.size or 0) > self.most:
            message = _("The file is larger than %(most)d MB.")
            raise forms.ValidationError(
                message, params={"most": self.most // 1_000_000}
            )
        content: bytes = uploaded.read()
        if packed_files.form_of(content):
            raise forms.ValidationError(_("The file is compressed: unpack it first."))
        try:
            return content.decode("utf-8-sig")
        except UnicodeDecodeError:
            return content.decode("latin-1")


class LoadForm(forms.Form):
    """What somebody brings."""

    name = forms.CharField(label=_("Name"), max_length=200)
    project = pages.ProjectField()
    statements = forms.CharField(
        label=_("Log, counters or SQL"),
        required=False,
        strip=False,
        max_length=MOST_WRITTEN,
        help_text=_(
            "A log of PostgreSQL (csvlog, jsonlog or stderr), pg_stat_statements (CSV, JSON or "
            "psql), or SQL. Its form is recognised."
        ),
        widget=forms.Textarea(attrs={"rows": 12, **CODE}),
    )
    statements_file = TextFile(
        _("or as a file"),
        loads.MOST_STATEMENTS,
        _("Takes the place of the text above."),
    )
    log_line_prefix = forms.CharField(
        label="log_line_prefix",
        required=False,
        strip=False,
        max_length=200,
        help_text=_("Of a log of stderr, if sessions are not found without it."),
        widget=forms.TextInput(attrs=CODE),
    )
    weights_file = TextFile(
        _("pg_stat_statements of the same server"),
        loads.MOST_STATEMENTS,
        _(
            "How often each statement is called, where the log has only a part of the time."
        ),
    )
    masks = forms.BooleanField(
        label=_("Mask values that look like secrets before anything is kept"),
        required=False,
        help_text=_(
            "Addresses of mail, numbers of cards, keys, and what is called a password."
        ),
    )
    data_kind = forms.ChoiceField(
        label=_("Data"),
        choices=(
            ("pgbench", _("the tables of pgbench")),
            ("sql", _("SQL, such as pg_dump writes it (plain)")),
            ("dump", _("a dump that is uploaded next (plain, gz, custom or tar)")),
            ("file", _("a dump on the server (custom, directory or tar)")),
        ),
        initial="pgbench",
    )
    scale = forms.IntegerField(
        label=_("Scale factor"),
        required=False,
        initial=10,
        min_value=1,
        max_value=10_000,
    )
    sql = forms.CharField(
        label=_("SQL that makes the data"),
        required=False,
        strip=False,
        max_length=MOST_WRITTEN,
        widget=forms.Textarea(attrs={"rows": 6, **CODE}),
    )
    sql_file = TextFile(
        _("or as a file"), loads.MOST_SQL, _("Takes the place of the text above.")
    )
    path = forms.CharField(
        label=_("Path on the server"),
        required=False,
        max_length=500,
        help_text=_(
            "pg_dump -Fc; it is read by pg_restore there, and not copied here."
        ),
        widget=forms.TextInput(attrs=CODE),
    )
    days = forms.IntegerField(
        label=_("Keep it for"),
        initial=loads.USUAL_DAYS,
        min_value=1,
        max_value=loads.MOST_DAYS,
        help_text=_(
            "Days, then it is removed, and what was found of its statements with it."
        ),
    )

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = cast(pages.ProjectField, self.fields["project"])
        field.offer(user, Right.CONFIGURE)
        field.help_text = _(
            "Its members see the load, even where the project is public."
        )

    def clean(self) -> dict[str, Any]:
        """Statements are needed, and those of a file take the place of written ones."""
        fields: dict[str, Any] = super().clean() or self.cleaned_data
        for name in ("statements", "sql"):
            if text := fields.get(f"{name}_file"):
                fields[name] = text
        if (
            not fields.get("statements", "").strip()
            and "statements_file" not in self.errors
        ):
            self.add_error("statements", _("Write or choose statements."))
        return fields

    def brought(self) -> Brought:
        """What was brought, of a valid form."""
        fields = self.cleaned_data
        return Brought(
            statements=fields["statements"].replace("\r\n", "\n"),
            weights=fields["weights_file"],
            prefix=fields["log_line_prefix"],
            masks=fields["masks"],
            data_kind=fields["data_kind"],
            scale=fields["scale"] or 1,
            sql=fields["sql"].replace("\r\n", "\n"),
            path=fields["path"],
        )


class PartForm(forms.Form):
    """A part of a dump; `size` is that of all of it, and missing where this is all."""

    part = forms.FileField(label=_("Dump"), required=True)
    number = forms.IntegerField(required=False, min_value=0)
    size = forms.IntegerField(required=False, min_value=1)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["part"].help_text = _(
            "pg_dump plain, packed by gzip, -Fc or -Ft; up to %(most)d MB."
        ) % {"most": dumps.most_bytes() // 1_000_000}

    def clean_part(self) -> bytes:
        """Its bytes."""
        uploaded: UploadedFile[bytes] = self.cleaned_data["part"]
        if (uploaded.size or 0) > dumps.PART_BYTES:
            message = _("Without JavaScript a dump may have %(most)d MB.")
            raise forms.ValidationError(
                message, params={"most": dumps.PART_BYTES // 2**20}
            )
        content: bytes = uploaded.read()
        return content


class MeasureForm(forms.Form):
    """On which versions, and how long."""

    server = forms.ModelChoiceField(
        Server.objects.filter(state=Server.State.READY).exclude(base_dir=""),
        label=_("Server"),
        to_field_name="slug",
        empty_label=None,
    )
    installations = forms.ModelMultipleChoiceField(
        Installation.objects.none(),
        label=_("Versions"),
        widget=forms.CheckboxSelectMultiple,
    )
    rounds = forms.IntegerField(
        label=_("Rounds"),
        initial=loads.USUAL_ROUNDS,
        min_value=loads.LEAST_ROUNDS,
        max_value=loads.MOST_ROUNDS,
        help_text=_("In each, every version is measured once, in a random order."),
    )
    seconds = forms.IntegerField(
        label=_("Seconds of a run"),
        initial=30,
        min_value=1,
        max_value=86_400,
        help_text=_(
            "All statements are executed again and again for so long, then the load as a whole for "
            "as long."
        ),
    )
    caches = forms.ChoiceField(
        label=_("Caches"),
        choices=CACHES,
        initial=WARM,
        help_text=_(
            "Cold: before each execution PostgreSQL is restarted, and its files are dropped from "
            "the machine's memory, which takes one or two seconds."
        ),
    )
    clients = forms.IntegerField(
        label=_("Clients of the load as a whole"),
        initial=8,
        min_value=0,
        max_value=statements.MOST_CLIENTS,
        help_text=_(
            "Its statements at their calls, by so many clients at once; 0: not measured."
        ),
    )
    statement_timeout = forms.IntegerField(
        label=_("Statement timeout"), initial=20, min_value=1, max_value=3600
    )
    disk_mb = forms.IntegerField(
        label=_("Size of the data"),
        initial=1000,
        min_value=10,
        max_value=10_000_000,
        help_text=_(
            "MB in a cluster, with indexes: so much must be free for each version."
        ),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        servers = list(cast(Any, self.fields["server"]).queryset)
        if len(servers) == 1:
            self.fields["server"].initial = servers[0].slug
        field = cast(Any, self.fields["installations"])
        field.queryset = (
            Installation.objects.filter(server__in=servers, removed_at=None)
            .select_related("server")
            .order_by("server__name", "version_num")
        )
        several = len(servers) > 1
        field.label_from_instance = lambda installation: (
            f"{installation.server.name}: {installation.version}"
            if several
            else installation.version
        )

    def clean(self) -> dict[str, Any]:
        """The versions are those of the server."""
        fields: dict[str, Any] = super().clean() or self.cleaned_data
        server = fields.get("server")
        chosen = fields.get("installations") or ()
        if server and any(
            installation.server_id != server.pk for installation in chosen
        ):
            self.add_error("installations", _("Choose versions of the server."))
        return fields

    def asked(self) -> Asked:
        """What was asked for, of a valid form."""
        fields = dict(self.cleaned_data)
        fields["is_cold"] = fields.pop("caches") == COLD
        fields["installations"] = list(fields["installations"])
        return Asked(**fields)
