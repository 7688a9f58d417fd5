"""The Reconciliation Service API 0.2: matches tables with the catalogue, and extends them (decision 0024)."""

from localidades_api.api.reconcile import pages, service, suggest

PARTS = (service, suggest, pages)
