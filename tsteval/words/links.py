"""Links in texts: found, and asked for without reaching private networks"""

import asyncio
import concurrent.futures
import contextlib
import ipaddress
import socket
import threading
from dataclasses import astuple, dataclass

from tqdm.auto import tqdm

from ..core.checks import InputTypeError, describe, tokenizable

_PUBLIC_IPV6 = ipaddress.ip_network("2000::/3")


def is_public_address(
    address: str,  # IPv4 or IPv6
) -> bool:
    """Whether an address belongs to the public internet: not private, loopback, link-local, multicast or reserved.

    Raises: ValueError for what is no address.
    Source: the IANA special-purpose address registries, through Python's `ipaddress`.
    """
    number = ipaddress.ip_address(address)
    if number.version == 6:
        if number.ipv4_mapped:
            return is_public_address(str(number.ipv4_mapped))
        if (
            number not in _PUBLIC_IPV6 or number.sixtofour or number.teredo
        ):  # the last two wrap an IPv4 address
            return False
    return number.is_global and not number.is_multicast


@dataclass(frozen=True)
class LinkLimits:
    """What checking links may cost, and where it may go."""

    per_link: float = 10.0  # seconds for one link, redirects included
    total: float = 60.0  # seconds for all links of a call
    at_once: int = 20  # links under way at the same time
    redirects: int = 5  # followed for one link
    characters: int = 2048  # of the longest address that is tried
    allow_private: tuple[
        str, ...
    ] = ()  # networks that may be called although not public, such as "127.0.0.1/32"

    @property
    def tag(self) -> str:
        """All limits, for signatures."""
        *numbers, networks = astuple(self)
        return ",".join([*(f"{number:g}" for number in numbers), *networks])


class _Refused(Exception):
    """A link that is not requested; the message says why."""


async def _look_up(host: str, port: int | None) -> list:
    """What the name server says, asked in a thread that may be left behind: a pool's threads would hold up the end of
    the program."""
    loop = asyncio.get_running_loop()
    answer = loop.create_future()

    def tell(settle, result) -> None:
        if not answer.done():
            settle(result)

    def ask() -> None:
        try:
            outcome = answer.set_result, socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except Exception as error:
            outcome = answer.set_exception, error
        # nobody waits any more: the loop is closed
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(tell, *outcome)

    threading.Thread(target=ask, daemon=True).start()
    return await answer


async def _resolve(url, limits: LinkLimits) -> list[str]:
    """The addresses of a link's host, all of them allowed."""
    try:
        entries = await _look_up(url.host, url.port)
    except (OSError, UnicodeError) as error:
        raise _Refused("unknown host") from error
    allowed = [ipaddress.ip_network(network) for network in limits.allow_private]
    addresses = list(dict.fromkeys(entry[4][0] for entry in entries))
    for address in addresses:
        if not is_public_address(address) and not any(
            ipaddress.ip_address(address) in network for network in allowed
        ):
            raise _Refused("refused: not a public address")
    return addresses


def _parse(link: str, limits: LinkLimits, base=None):
    """The address that a link stands for, without credentials and fragment."""
    import httpx2

    if len(link) > limits.characters:
        raise _Refused(f"refused: longer than {limits.characters:,} characters")
    try:
        link = f"http://{link}" if link.lower().startswith("www.") else link
        url = httpx2.URL(link) if base is None else base.join(link)
        url = url.copy_with(userinfo=b"", fragment=None)
    except (httpx2.InvalidURL, ValueError, TypeError) as error:
        raise _Refused("not an address") from error
    if url.scheme not in ("http", "https"):
        raise _Refused("refused: neither http nor https")
    if not url.host or (url.port or 1) > 65_535:
        raise _Refused("not an address")
    return url


async def _ask(transport, method: str, url, limits: LinkLimits):
    """One request, at the first of the host's checked addresses that can be reached; the answer's headers only."""
    import httpx2

    headers = {"Host": url.netloc.decode("ascii"), "User-Agent": "tsteval", "Accept": "*/*"}
    extensions = {
        "sni_hostname": url.raw_host.decode("ascii"),
        "timeout": httpx2.Timeout(limits.per_link).as_dict(),
    }
    for address in await _resolve(url, limits):
        request = httpx2.Request(
            method, url.copy_with(host=address), headers=headers, extensions=extensions
        )
        try:
            response = await transport.handle_async_request(request)
        except httpx2.ConnectError as error:
            failure = error
            continue
        await response.aclose()
        return response
    raise failure


async def _follow(transport, link: str, limits: LinkLimits) -> str:
    """The status of a link, after its redirects."""
    url = _parse(link, limits)
    for _ in range(limits.redirects + 1):
        response = await _ask(transport, "HEAD", url, limits)
        if response.status_code == 405:
            response = await _ask(transport, "GET", url, limits)
        if not response.has_redirect_location:
            return str(response.status_code)
        url = _parse(response.headers["location"], limits, base=url)
    return f"more than {limits.redirects} redirects"


OUT_OF_TIME = "not checked: the time for all links was over"


async def _status(transport, link: str, limits: LinkLimits, gate) -> str:
    import httpx2

    async with gate:
        try:
            return await asyncio.wait_for(_follow(transport, link, limits), limits.per_link)
        except _Refused as refusal:
            return str(refusal)
        except (asyncio.TimeoutError, httpx2.TimeoutException):
            return "timed out"
        except Exception as error:  # whatever one link does to the client, the others still count
            return (
                "certificate not accepted"
                if "CERTIFICATE" in str(error)
                else f"failed: {type(error).__name__}"
            )


async def _check_all(links: list[str], limits: LinkLimits, progress: bool) -> dict[str, str]:
    import httpx2

    gate = asyncio.Semaphore(limits.at_once)
    one_use = httpx2.Limits(
        max_connections=None, max_keepalive_connections=0
    )  # no connection is shared by two sites
    transport = httpx2.AsyncHTTPTransport(
        verify=httpx2.create_ssl_context(), trust_env=False, limits=one_use
    )
    bar = tqdm(total=len(links), desc="links", disable=not progress)
    with bar:
        async with transport:
            tasks = [asyncio.create_task(_status(transport, link, limits, gate)) for link in links]
            for task in tasks:
                task.add_done_callback(lambda _: bar.update())
            _, late = await asyncio.wait(tasks, timeout=limits.total)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
    return {
        link: OUT_OF_TIME if task in late else task.result() for link, task in zip(links, tasks)
    }


def _run_elsewhere(work):
    """The result of a coroutine, run in a thread; an interrupt here cancels it there, and does not wait for slow
    servers."""
    loop = asyncio.new_event_loop()
    task = loop.create_task(work)

    def run():
        try:
            return loop.run_until_complete(task)
        finally:
            loop.close()

    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        try:
            return thread.submit(run).result()
        except BaseException:
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(task.cancel)  # it was over already
            raise


def check_links(
    links: list[str],  # addresses; repetitions and fragments (what follows "#") cost nothing
    *,
    limits: LinkLimits = LinkLimits(),  # time, number and networks
    progress: bool = False,  # show a bar
) -> dict[str, str]:  # link -> the final HTTP status, "200" if it is valid, or why there is none
    """Ask for every distinct address once. Nothing that a server answers, or fails to answer, raises an error."""
    if not isinstance(limits, LinkLimits):
        raise InputTypeError(f"limits must be LinkLimits, got {describe(limits)}")
    address = {link: link.partition("#")[0] for link in tokenizable(links, "links")}
    distinct = list(dict.fromkeys(address.values()))
    if not distinct:
        return {}
    status = _run_elsewhere(_check_all(distinct, limits, progress))
    return {link: status[address[link]] for link in address}
