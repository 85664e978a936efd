// SPDX-License-Identifier: MIT
// java's three ways to a server: HttpURLConnection, HttpClient, and a selector over channels.
import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.URL;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;

public class Fetch {
	static void urlConnection(String base) throws Exception {
		for (String path : new String[] { "/", "/big.txt", "/hello.txt" }) {
			HttpURLConnection connection = (HttpURLConnection) new URL(base + path).openConnection();
			try (InputStream in = connection.getInputStream()) {
				System.out.println(path + " " + connection.getResponseCode() + " " + in.readAllBytes().length);
			}
		}
	}

	static void httpClient(String base) throws Exception {
		HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
		List<CompletableFuture<Integer>> all = new ArrayList<>();
		for (int i = 0; i < 8; i++)
			all.add(client.sendAsync(HttpRequest.newBuilder(URI.create(base + "/files/" + i + ".txt")).build(),
				BodyHandlers.ofString()).thenApply(answer -> answer.body().length()));
		for (CompletableFuture<Integer> one : all)
			System.out.println(one.get());
	}

	static void channels(int port) throws Exception {
		Selector selector = Selector.open();
		for (int i = 0; i < 20; i++) {
			SocketChannel channel = SocketChannel.open();
			channel.configureBlocking(false);
			channel.connect(new InetSocketAddress("127.0.0.1", port));
			channel.register(selector, SelectionKey.OP_CONNECT);
		}
		int open = 20;
		long bytes = 0;
		ByteBuffer buffer = ByteBuffer.allocateDirect(65536);
		while (open > 0) {
			selector.select();
			for (SelectionKey key : selector.selectedKeys()) {
				SocketChannel channel = (SocketChannel) key.channel();
				if (key.isConnectable() && channel.finishConnect()) {
					channel.write(ByteBuffer.wrap("GET /hello.txt HTTP/1.0\r\n\r\n".getBytes()));
					key.interestOps(SelectionKey.OP_READ);
				} else if (key.isReadable()) {
					buffer.clear();
					int count = channel.read(buffer);
					bytes += Math.max(0, count);
					if (count < 0) {
						channel.close();
						open--;
					}
				}
			}
			selector.selectedKeys().clear();
		}
		System.out.println(bytes);
	}

	public static void main(String[] arguments) throws Exception {
		urlConnection(arguments[0]);
		httpClient(arguments[0]);
		channels(URI.create(arguments[0]).getPort());
		System.exit(0);
	}
}
