"""Every address of the site: pages, REST API, administration."""

from allauth.account import views as account_views
from django.urls import include, path

from benchlab import health

urlpatterns = [
    path("", include("runs.web.urls")),
    path("api/", include("runs.api.urls")),
    path("login/", account_views.login, name="login"),
    path("logout/", account_views.logout, name="logout"),
    path("accounts/", include("benchlab.account_urls")),
    path("i18n/", include("django.conf.urls.i18n")),
    path("healthz/", health.healthz, name="healthz"),
]
