"""The server: an API under ``/api/v1`` and a page for people, over the same services as the command line.

``applications`` puts it together. A request passes ``guards`` (host, size, rate, origin), then ``callers``
(who asks) and ``gates`` (may they), then a function of ``routes`` or ``pages``. ``schemas`` say what answers
look like, ``problems`` what errors do.
"""
