def forward_no_overlap(chunks, p2p, inputs):
    """One micro-batch at a time through all virtual stages."""
    first, last = p2p.rank == 0, p2p.rank == p2p.world - 1
    out = []
    for x in inputs:
        for v, chunk in enumerate(chunks):
            if not (first and v == 0):
                x = p2p.recv_forward()
            y = chunk(x)
            if not (last and v == len(chunks) - 1):
                p2p.send_forward(y)
        if last:
            out.append(y)
    return out


def forward_interleaved(chunks, p2p, inputs):
    """Micro-batch m runs chunk 1 while micro-batch m + 1 runs chunk 0 on the other stage."""
    first, last = p2p.rank == 0, p2p.rank == p2p.world - 1
    out = []
    n = len(inputs)
    if first:
        y = chunks[0](inputs[0])
        p2p.send_forward(y)
        for m in range(n):
            nxt = chunks[0](inputs[m + 1]) if m + 1 < n else None
            x = p2p.send_forward_recv_forward(nxt) if nxt is not None else p2p.recv_forward()
            p2p.send_forward(chunks[1](x))
    if last:
        x = p2p.recv_forward()
        for m in range(n):
            y = chunks[0](x)
            x = p2p.send_forward_recv_forward(y)
            if m + 1 < n:
                out.append(chunks[1](p2p.recv_forward()))
            else:
                out.append(chunks[1](x))
    return out
