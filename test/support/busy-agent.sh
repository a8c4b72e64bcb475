#!/bin/sh
# An agent that is always working and costs almost nothing: after its first prompt it writes a few words every second.
while IFS= read -r line; do
  id=${line#*\"id\":}
  id=${id%%[,\}]*}
  case $line in
    *'"method":"initialize"'*)
      printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":1,"agentCapabilities":{},"authMethods":[]}}\n' "$id" ;;
    *'"method":"session/new"'*)
      printf '{"jsonrpc":"2.0","id":%s,"result":{"sessionId":"busy-1"}}\n' "$id" ;;
    *'"method":"session/prompt"'*)
      while sleep 1; do
        printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"busy-1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"at work. "}}}}\n'
      done & ;;
  esac
done
