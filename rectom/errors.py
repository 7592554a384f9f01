"""Everything that RecToM raises on purpose.

    RectomError
    ├── DataError            a benchmark file is missing, damaged or of another schema
    ├── StoryError           a story or question that the chosen reader cannot take
    ├── FormulaError         a fact or formula that does not parse
    ├── StepFailure          one semantic step of one question failed; the run goes on
    ├── SettingsError        options that do not fit together
    │   └── Occupied         another process works on the same run
    ├── Partial              a run that stopped early on purpose; what is done is kept
    │   ├── BudgetReached    what it may spend is spent
    │   └── TooManyFailures  more questions failed than are put up with
    └── EndpointError        the model's server
        ├── EndpointDown     nobody answers there
        ├── WrongKey         401 or 403
        ├── UnknownModel     the server does not serve that name
        ├── EndpointBusy     still 429 or 503 after all retries
        ├── EndpointFault    still 5xx or garbage after all retries
        └── RequestRefused   400: the server will not take this request

A message is one line: what happened, and what to do about it.
"""


class RectomError(Exception):
    """The root of the tree."""


class DataError(RectomError):
    """A benchmark file is missing, damaged or of another schema."""


class StoryError(RectomError):
    """A story or a question that the chosen reader cannot take."""


class FormulaError(RectomError):
    """A fact or a formula that does not parse."""


class SettingsError(RectomError):
    """Options that do not fit together."""


class Occupied(SettingsError):
    """Another process works on the same run, or on the same sweep."""


class StepFailure(RectomError):
    """One semantic step of one question failed.

    `step` is the step's name (abstract, chain, …), `why` the fault in words.
    """

    def __init__(self, step: str, why: str) -> None:
        super().__init__(f"{step}: {why}")
        self.step = step
        self.why = why


class Partial(RectomError):
    """A run that stopped early on purpose: the same command goes on."""


class BudgetReached(Partial):
    """What the run may spend is spent."""


class TooManyFailures(Partial):
    """More questions failed than are put up with."""


class EndpointError(RectomError):
    """The model's server."""


class EndpointDown(EndpointError):
    """Nobody answers at the address."""


class WrongKey(EndpointError):
    """The server does not accept the key (401 or 403)."""


class UnknownModel(EndpointError):
    """The server does not serve a model of that name."""


class EndpointBusy(EndpointError):
    """Still 429 or 503 after all retries."""


class EndpointFault(EndpointError):
    """Still 5xx, or not a reply at all, after all retries."""


class RequestRefused(EndpointError):
    """The server will not take this request (400)."""
