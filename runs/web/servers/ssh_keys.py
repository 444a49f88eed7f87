"""SSH keys: the list with what each is used for, a new one, and deleting what is not used."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from runs.models import SSHKey
from runs.selectors.servers import servers as key_selectors
from runs.services.servers import ssh_keys
from runs.web import pages
from runs.web.servers.forms import GenerateKeyForm, UploadKeyForm


@sensitive_post_parameters("private_key", "passphrase")
@require_http_methods(["GET", "HEAD", "POST"])
def ssh_key_list(request: HttpRequest) -> HttpResponse:
    """The keys, and two forms: to generate one, and to upload one."""
    ssh_keys.default()  # so that there is one
    wants_upload = "private_key" in request.POST
    is_post = request.method == "POST"
    generating = GenerateKeyForm(
        request.POST if is_post and not wants_upload else None, auto_id="generate_%s"
    )
    uploading = UploadKeyForm(request.POST if wants_upload else None, auto_id="upload_%s")
    form = uploading if wants_upload else generating
    if is_post and form.is_valid() and (key := _made(form)):
        message = _("The key “%(name)s” was made. Let it in on the server.") % {"name": key.name}
        messages.success(request, message)
        return redirect("ssh-key-list")
    context = {
        "section": "servers",
        "keys": key_selectors.ssh_keys(),
        "generating": generating,
        "uploading": uploading,
    }
    return render(request, "servers/keys.html", context)


@require_POST
def ssh_key_delete(request: HttpRequest, key_id: int) -> HttpResponse:
    """Delete a key that no server needs."""
    key = get_object_or_404(SSHKey, pk=key_id)
    with pages.refusals(request):
        ssh_keys.delete(key=key)
        messages.success(request, _("The key “%(name)s” was deleted.") % {"name": key.name})
    return redirect("ssh-key-list")


def _made(form: Any) -> SSHKey | None:
    """The key of a valid form; None with the reason in the form."""
    make = ssh_keys.upload if isinstance(form, UploadKeyForm) else ssh_keys.generate
    with pages.faults_of(form):
        return make(**form.cleaned_data)
    return None
