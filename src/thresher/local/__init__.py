"""The two halves of a real survey in the local model: many clients, each with one record, and a server without any.

    server = Server(LocalSparseRegressor(5, 1.0, feature_bound=1.0, target_bound=3.0), people=10_000, features=100)
    text = server.task.to_json()                          # published
    client = Client(SurveyTask.from_json(text), x, y)           # on each person's device
    server.receive(client.answer(server.question()))      # once per person; questions travel as JSON, answers as bytes
    server.close_round()                                  # and so on, until server.finished
    model = server.model()

Who can do what to whom is said in ``thresher.local.client`` (a hostile server) and ``thresher.local.server``
(hostile people). Nothing here opens a connection; carry the JSON and the bytes as you like, over TLS.
"""

from thresher.local.client import Client
from thresher.local.question import SurveyQuestion
from thresher.local.server import Server
from thresher.local.task import SurveyTask
from thresher.local.wire import BadReport, Report, decode, encode

__all__ = ["BadReport", "Client", "Report", "Server", "SurveyQuestion", "SurveyTask", "decode", "encode"]
