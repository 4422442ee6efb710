"""The server: an API under ``/api/v1`` and web pages, over the same services as the command line.

``applications`` builds the application. A request passes ``guards`` (host, size, rate, origin), then
``callers`` (who the caller is) and ``gates`` (what the caller may do), then a function of ``routes`` or
``pages``. ``schemas`` define the answers, ``problems`` the errors.
"""
