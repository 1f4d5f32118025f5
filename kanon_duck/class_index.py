from __future__ import annotations
import numpy as np
from kanon_duck.kernels.class_index import *
from kanon_duck.kernels import class_index as K
LANES=K.LANES
FILL=13
def build(low, high, sizes, caps, weights, order):
    classes=len(low)
    columns=int((np.flatnonzero(caps)[-1:]+1).sum()) 
    counts=[max(1,-(-len(order)//FILL))]
    while counts[0]>1: counts.insert(0,-(-counts[0]//LANES))
    starts=np.concatenate([[0],np.cumsum(counts)])
    blocks=int(starts[-1]); inner=blocks-counts[-1]
    children=np.full(blocks,-1); parents=np.full(blocks,-1)
    for l in range(len(counts)-1):
        n=counts[l+1]
        parents[starts[l+1]:starts[l+2]]=starts[l]*LANES+np.arange(n)
        children[starts[l]:starts[l+1]]=starts[l+1]+LANES*np.arange(counts[l])
    entries=np.full(counts[-1]*LANES,-1)
    position=np.arange(len(order))
    entries[order]=(inner+position//FILL)*LANES+position%FILL
    top=np.iinfo(low.dtype).max
    boxes=np.empty((blocks,columns,2,LANES),low.dtype); rooms=np.full((inner,columns,LANES),top,low.dtype)
    boxes[:,:,LOW]=top; boxes[:,:,HIGH]=0;
    codes=np.full((inner,columns,BUCKETS),65535,np.uint16)
    cap_=len(entries)
    L=np.zeros((cap_,low.shape[1]),low.dtype);H=L.copy();S=np.zeros(cap_,np.int64)
    L[:classes]=low;H[:classes]=high;S[:classes]=sizes
    ix=ClassIndex(L,H,S,np.array([classes]),entries,caps[:columns].copy(),weights[:columns].astype(float),boxes,rooms,codes,
      np.full((blocks,LANES),np.inf),np.full((blocks,LANES),np.finfo(float).max),np.full((blocks,LANES),np.iinfo(np.int64).max),children,parents)
    fill_tree(ix)
    return ix
