"""The Reconciliation Service API 0.2: matches tables with the catalogue and extends them (docs/decisions/rows.md)."""

from localidades_api.api.reconcile import entities, service

PARTS = (service, entities)
