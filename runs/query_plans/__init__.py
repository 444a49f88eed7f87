"""Plans of queries as EXPLAIN prints them: walked, measured and compared; `reading` reads them."""

from runs.query_plans.comparing import Difference, Pair, SubPlan, compare, subplans
from runs.query_plans.node import Node, Plan, PlanUnreadableError
