#!/usr/bin/escript
%% SPDX-License-Identifier: MIT
%% erlang's own scheduler and its socket driver: one connection, then twenty processes with one each.
main([Port]) ->
	io:format("~s~n", [last_line(list_to_integer(Port), "/hello.txt")]),
	Self = self(),
	Fetch = fun(I) ->
		spawn(fun() ->
			Line = last_line(list_to_integer(Port), "/files/" ++ integer_to_list(I rem 8) ++ ".txt"),
			Self ! {I, Line}
		end)
	end,
	lists:foreach(Fetch, lists:seq(0, 19)),
	lists:foreach(fun(I) -> receive {I, Line} -> io:format("~p ~s~n", [I, Line]) end end, lists:seq(0, 19)).

last_line(Port, Path) ->
	{ok, Socket} = gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {active, false}]),
	ok = gen_tcp:send(Socket, ["GET ", Path, " HTTP/1.0\r\n\r\n"]),
	Text = everything(Socket, <<>>),
	gen_tcp:close(Socket),
	lists:last(string:split(string:trim(Text), "\n", all)).

everything(Socket, Text) ->
	case gen_tcp:recv(Socket, 0, 10000) of
		{ok, More} -> everything(Socket, <<Text/binary, More/binary>>);
		{error, closed} -> Text
	end.
