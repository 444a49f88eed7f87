"""Durable steps on a target, their guard and their fence."""
