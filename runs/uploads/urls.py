"""Addresses of uploads."""

from django.urls import path

from runs.shared.urls import page
from runs.uploads.api.doors import BatchDoor, UploadDoor
from runs.uploads.views import comment_client, upload_client, upload_new

pages = [
    page("uploads/new/", upload_new),
    page("download/benchlab-upload", upload_client),
    page("download/benchlab-comment", comment_client),
]
api = [
    path("uploads/", UploadDoor.as_view(), name="upload"),
    path("uploads/batch/", BatchDoor.as_view(), name="upload-batch"),
]
