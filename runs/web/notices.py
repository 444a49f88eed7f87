"""Messages about refused requests, for the person who made them."""

from django.contrib import messages
from django.forms import BaseForm
from django.http import HttpRequest
from django.utils.translation import gettext as _

from runs.services.errors import ServiceError


def refused(request: HttpRequest, error: ServiceError) -> None:
    """Show the error on the next page, its code with it."""
    messages.error(request, sentence(error), extra_tags=error.code)


def into_form(form: BaseForm, error: ServiceError) -> None:
    """Put the error at the field that is at fault, or above the form."""
    form.add_error(error.field if error.field in form.fields else None, sentence(error))


def sentence(error: ServiceError) -> str:
    """What was found, and what to do."""
    return f"{error.message} {_(error.remedy)}" if error.remedy else error.message
