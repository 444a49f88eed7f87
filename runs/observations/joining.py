"""What observations add to subjects below: a duty, a card of the first page, the first campaign."""

from runs.observations import first_page as card
from runs.observations.services import first_observation, observations
from runs.operations.services import first_start
from runs.shared import duties, first_page
from runs.shared.duties import Duty

duties.ADDED.append(Duty(observations.keep, is_outward=True, is_rare=True))
first_page.CARDS.join(card.way_on)
first_start.FIRST_CAMPAIGNS.join(first_observation.queue)
