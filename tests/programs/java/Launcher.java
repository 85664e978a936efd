// SPDX-License-Identifier: MIT
// Starts programs in the middle of calls on a connection that is kept alive: Launcher LIVE-PORT DEAD-PORT.
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.Socket;

public class Launcher {
	static final InetAddress LOOPBACK = InetAddress.getLoopbackAddress();

	static void exchange(Socket live) throws IOException {
		OutputStream out = live.getOutputStream();
		InputStream in = live.getInputStream();
		StringBuilder answer = new StringBuilder();
		out.write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".getBytes());
		while (!answer.toString().endsWith("server\n")) {
			int c = in.read();
			if (c < 0)
				throw new IOException("end of file");
			answer.append((char) c);
		}
		System.out.println("answered");
	}

	static void refused(int port) {
		try (Socket dead = new Socket(LOOPBACK, port)) {
			System.out.println("connected");
		} catch (IOException e) {
			System.out.println(e.getMessage());
		}
	}

	static void launch(String command) throws Exception {
		Process process = new ProcessBuilder("sh", "-c", command).redirectErrorStream(true).start();
		System.out.print(new String(process.getInputStream().readAllBytes()));
		System.out.println(process.waitFor());
	}

	public static void main(String[] arguments) throws Exception {
		Socket live = new Socket(LOOPBACK, Integer.parseInt(arguments[0]));
		for (int i = 0; i < 5; i++) {
			exchange(live);
			refused(Integer.parseInt(arguments[1]));
			launch("echo from the child; exit " + i);
			try {
				new ProcessBuilder("/does/not/exist").start();
			} catch (IOException e) {
				System.out.println(e.getMessage());
			}
		}
		exchange(live);
		live.close();
	}
}
