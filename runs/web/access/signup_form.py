"""The form by which people sign up."""

from typing import Any

from allauth.account import forms
from django.utils.translation import gettext_lazy as _


class SignupForm(forms.SignupForm):  # type: ignore[misc]
    """As allauth's; our templates say by themselves which fields are optional."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["email"].label = _("E-mail")
