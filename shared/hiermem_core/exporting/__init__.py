"""Exports of a tenant and their way back; backups of a location and their way back."""
