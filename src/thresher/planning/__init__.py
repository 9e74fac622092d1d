"""Before anything is spent: how much epsilon, how many rows, or whether no private method can work."""

from thresher.planning.forecast import Forecast, Prediction, Spread, forecast
from thresher.planning.law import PlanningLaw
from thresher.planning.reach import Reach, least
from thresher.planning.verdict import Verdict, verdict

__all__ = ["Forecast", "PlanningLaw", "Prediction", "Reach", "Spread", "Verdict", "forecast", "least", "verdict"]
