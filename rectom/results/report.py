"""stub"""
def page(line, settings, outcomes, traces) -> str:  # type: ignore
    return "<html></html>"
