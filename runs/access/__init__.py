"""People, projects, rights, tokens and the audit trail: who may do what."""
