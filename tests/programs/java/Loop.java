// SPDX-License-Identifier: MIT
// As client_loop.py, on one Selector of java.nio.
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.util.ArrayList;
import java.util.List;

public class Loop {
	static final class Peer {
		SocketChannel channel;
		double began;
		int answers;
		boolean isOther;
	}

	static final ByteBuffer buffer = ByteBuffer.allocate(100);
	static Selector selector;
	static List<Double> connect, first, second, gaps, trips;
	static double began, connected;
	static int left;

	static double now() {
		return System.nanoTime() / 1e6;
	}

	static void send(Peer peer) throws IOException {
		peer.began = now();
		peer.channel.write(ByteBuffer.wrap("hello\n".getBytes()));
	}

	static void begin(int port, boolean isOther) throws IOException {
		Peer peer = new Peer();
		peer.isOther = isOther;
		peer.channel = SocketChannel.open();
		peer.channel.configureBlocking(false);
		peer.began = now();
		boolean done = peer.channel.connect(new InetSocketAddress("127.0.0.1", port));
		peer.channel.register(selector, done ? SelectionKey.OP_READ : SelectionKey.OP_CONNECT, peer);
		if (done)
			hasConnected(peer);
	}

	static void hasConnected(Peer peer) throws IOException {
		if (!peer.isOther) {
			connect.add(now() - peer.began);
			connected = now() - began;
		}
		send(peer);
	}

	static void hasAnswer(SelectionKey key, Peer peer) throws IOException {
		buffer.clear();
		int size = peer.channel.read(buffer);
		if (size == 0)
			return;
		if (size != 6)
			throw new IOException("got " + size);
		if (peer.isOther) {
			trips.add(now() - peer.began);
			key.interestOps(0);
			return;
		}
		(peer.answers++ == 0 ? first : second).add(now() - peer.began);
		if (peer.answers == 1) {
			send(peer);
			return;
		}
		peer.channel.close();
		left--;
	}

	static void take(SelectionKey key) throws IOException {
		Peer peer = (Peer) key.attachment();
		if (key.isConnectable()) {
			if (!peer.channel.finishConnect())
				return;
			key.interestOps(SelectionKey.OP_READ);
			hasConnected(peer);
		} else if (key.isReadable()) {
			hasAnswer(key, peer);
		}
	}

	static void turn(int port, int count, boolean busy, int otherPort) throws IOException {
		left = count;
		if (busy)
			begin(otherPort, true);
		for (int i = 0; i < count; i++)
			begin(port, false);
		double tick = now() + 10;
		while (left > 0) {
			if (busy)
				selector.select(Math.max(1, (long) Math.ceil(tick - now())));
			else
				selector.select();
			for (SelectionKey key : selector.selectedKeys())
				take(key);
			selector.selectedKeys().clear();
			if (busy && now() >= tick) {
				gaps.add(now() - tick);
				tick = now() + 10;
				for (SelectionKey key : selector.keys()) {
					if (key.isValid() && key.interestOps() == 0) {
						key.interestOps(SelectionKey.OP_READ);
						send((Peer) key.attachment());
					}
				}
			}
		}
		for (SelectionKey key : selector.keys())
			key.channel().close();
		selector.selectNow();
	}

	static double cpu() {
		return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean())
			.getProcessCpuTime() / 1e6;
	}

	public static void main(String[] arguments) throws Exception {
		selector = Selector.open();
		System.out.println("ready");
		BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
		for (String line = lines.readLine(); line != null; line = lines.readLine()) {
			String[] words = line.split(" ");
			connect = new ArrayList<>();
			first = new ArrayList<>();
			second = new ArrayList<>();
			gaps = new ArrayList<>();
			trips = new ArrayList<>();
			double cpu = cpu();
			began = now();
			String error = "";
			try {
				turn(Integer.parseInt(words[0]), Integer.parseInt(words[1]), words[2].equals("busy"),
					Integer.parseInt(arguments[0]));
			} catch (IOException failure) {
				error = ", \"error\": \"" + failure + "\"";
			}
			System.out.printf("{\"connect\": %s, \"first\": %s, \"second\": %s, \"gaps\": %s, \"trips\": %s, "
				+ "\"connected\": %.3f, \"ended\": %.3f, \"cpu\": %.3f%s}%n", connect, first, second, gaps, trips,
				connected, now() - began, cpu() - cpu, error);
		}
	}
}
