"""A plan of a query: `{"text": ...}`."""

from runs.query_plans.node import Plan, PlanUnreadableError
from runs.query_plans.reading import read
from runs.reading.readers import stateless

READER = stateless(lambda request: read(request["text"]), Plan, (PlanUnreadableError,))
