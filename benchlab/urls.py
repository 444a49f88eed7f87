"""Every address of the site: pages, REST API, administration."""

from django.contrib.auth import views as auth_views
from django.urls import include, path

from benchlab import health

urlpatterns = [
    path("", include("runs.web.urls")),
    path("api/", include("runs.api.urls")),
    path("login/", auth_views.LoginView.as_view(), name="login"),
    path("logout/", auth_views.LogoutView.as_view(), name="logout"),
    path("i18n/", include("django.conf.urls.i18n")),
    path("healthz/", health.healthz, name="healthz"),
]
