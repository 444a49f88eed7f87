"""Addresses of accounts: those of django-allauth that are in use here, and not its old ones."""

from django.urls import include, path

urlpatterns = [
    path("", include("allauth.account.urls")),
    path("2fa/", include("allauth.mfa.urls")),
    path("sessions/", include("allauth.usersessions.urls")),
    path("linked/", include("allauth.socialaccount.urls")),
    path("", include("allauth.socialaccount.providers.openid_connect.urls")),
]
