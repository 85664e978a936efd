// SPDX-License-Identifier: MIT
// java's two HTTP clients, one request each on a connection of its own; `N` on stdin makes N side by side.
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.net.HttpURLConnection;
import java.net.URI;
import java.net.URL;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.security.SecureRandom;
import java.security.cert.X509Certificate;
import java.time.Duration;
import javax.net.ssl.HttpsURLConnection;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManager;
import javax.net.ssl.X509TrustManager;

public class Client {
	interface Request {
		String get() throws Exception;
	}

	static final class TrustAll implements X509TrustManager {
		public void checkClientTrusted(X509Certificate[] chain, String type) { }
		public void checkServerTrusted(X509Certificate[] chain, String type) { }
		public X509Certificate[] getAcceptedIssuers() { return new X509Certificate[0]; }
	}

	static String url;
	static int limitMs;
	static SSLContext tls;

	static String urlConnection() throws IOException {
		HttpURLConnection connection = (HttpURLConnection) new URL(url).openConnection();
		if (connection instanceof HttpsURLConnection) {
			((HttpsURLConnection) connection).setSSLSocketFactory(tls.getSocketFactory());
			((HttpsURLConnection) connection).setHostnameVerifier((name, session) -> true);
		}
		connection.setConnectTimeout(limitMs);
		connection.setReadTimeout(limitMs);
		connection.setRequestProperty("Connection", "close");
		try (InputStream in = connection.getInputStream()) {
			return new String(in.readAllBytes()).trim();
		}
	}

	static String httpClient() throws Exception {
		HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).sslContext(tls)
			.connectTimeout(Duration.ofMillis(limitMs)).build();
		HttpRequest request = HttpRequest.newBuilder(URI.create(url)).timeout(Duration.ofMillis(limitMs)).build();
		return client.send(request, HttpResponse.BodyHandlers.ofString()).body().trim();
	}

	static void call(Request request) {
		long began = System.nanoTime();
		String text;
		try {
			text = "ok " + request.get();
		} catch (Throwable error) {
			text = error.toString();
		}
		synchronized (System.out) {
			System.out.printf("%.1f %s%n", (System.nanoTime() - began) / 1e6, text.replace('\n', ' '));
			System.out.flush();
		}
	}

	public static void main(String[] arguments) throws Exception {
		Request request = arguments[0].equals("HttpURLConnection") ? Client::urlConnection : Client::httpClient;
		url = arguments[1];
		limitMs = Integer.parseInt(arguments[2]);
		tls = SSLContext.getInstance("TLS");
		tls.init(null, new TrustManager[] { new TrustAll() }, new SecureRandom());
		System.out.println("ready");
		BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
		for (String line = lines.readLine(); line != null; line = lines.readLine())
			for (int i = 0; i < Integer.parseInt(line.trim()); i++)
				new Thread(() -> call(request)).start();
	}
}
