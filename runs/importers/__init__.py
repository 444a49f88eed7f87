"""Importers: what other tools keep of past results, read from their own files. No Django."""
