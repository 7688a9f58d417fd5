"""The Reconciliation Service API 0.2: matches and extends tables (docs/decisions/reconciliation.md)."""

from localidades_api.api.reconcile import entities, service

PARTS = (service, entities)
