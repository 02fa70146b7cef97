"""A proxy to a database that delays every message: `slow.py PORT DELAYFILE` prints its own port.

The file contains the delay of each piece of data in milliseconds; it is read again for each piece."""

import asyncio
import sys

PORT, FILE = int(sys.argv[1]), sys.argv[2]


def delay_s():
    try:
        with open(FILE, encoding="ascii") as file:
            return int(file.read() or 0) / 1000
    except (OSError, ValueError):
        return 0


async def passed_on(reader, writer):
    try:
        while data := await reader.read(65536):
            await asyncio.sleep(delay_s())
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()


async def connected(reader, writer):
    try:
        to_reader, to_writer = await asyncio.open_connection("127.0.0.1", PORT)
    except OSError:
        writer.close()
        return
    await asyncio.gather(passed_on(reader, to_writer), passed_on(to_reader, writer))


async def main():
    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main())
