"""Plans of queries as EXPLAIN prints them: read, walked, measured and compared."""

from runs.query_plans.comparing import Difference, Pair, SubPlan, compare, subplans
from runs.query_plans.node import Node, Plan, PlanUnreadableError
from runs.query_plans.reading import read
