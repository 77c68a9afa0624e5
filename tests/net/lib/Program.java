// SPDX-License-Identifier: MIT OR GPL-2.0
// A program in Java as it is: what it says goes to stdout. Usage: java Program.java MODE [ARG...]
import java.io.InputStream;
import java.io.OutputStream;
import java.net.DatagramPacket;
import java.net.DatagramSocket;
import java.net.HttpURLConnection;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.security.MessageDigest;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.Iterator;
import java.util.Random;

class Program {
	static final InetAddress HERE = InetAddress.getLoopbackAddress();

	static String sum(byte[] bytes) throws Exception {
		return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(bytes));
	}

	/* Its channels are blocking ones. */
	static String url(String url) throws Exception {
		HttpURLConnection c = (HttpURLConnection) new URI(url).toURL().openConnection();

		c.setConnectTimeout(10000);
		c.setReadTimeout(30000);
		try (InputStream in = c.getInputStream()) {
			return sum(in.readAllBytes());
		}
	}

	/* Its channels are all with one selector. */
	static String client(String url, int times) throws Exception {
		HttpClient http = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
		HttpRequest ask = HttpRequest.newBuilder(new URI(url)).build();
		var answers = new java.util.ArrayList<java.util.concurrent.CompletableFuture<String>>();

		for (int i = 0; i < times; i++)
			answers.add(http.sendAsync(ask, HttpResponse.BodyHandlers.ofByteArray())
					.thenApply(r -> {
						try {
							return sum(r.body());
						} catch (Exception e) {
							return e.toString();
						}
					}));
		String all = null;
		for (var answer : answers) {
			String one = answer.get();

			if (all != null && !all.equals(one))
				return all + " and " + one;
			all = one;
		}
		return all;
	}

	static void carry(Socket s) {
		try (s) {
			s.getInputStream().transferTo(s.getOutputStream());
		} catch (Exception e) {
			System.out.println(e);
		}
	}

	static void threads() throws Exception {
		try (ServerSocket l = new ServerSocket(0, 50, HERE)) {
			System.out.println("at " + l.getLocalPort());
			for (;;) {
				Socket s = l.accept();

				s.setTcpNoDelay(true);
				new Thread(() -> carry(s)).start();
			}
		}
	}

	static void accept(Selector sel, ServerSocketChannel l) throws Exception {
		SocketChannel s = l.accept();

		if (s != null) {
			s.configureBlocking(false);
			s.register(sel, SelectionKey.OP_READ, ByteBuffer.allocateDirect(65536));
		}
	}

	/* What has been read is written before more is read. */
	static void move(SelectionKey k) throws Exception {
		SocketChannel s = (SocketChannel) k.channel();
		ByteBuffer b = (ByteBuffer) k.attachment();

		if (k.isReadable() && s.read(b) < 0) {
			s.close();
			return;
		}
		b.flip();
		s.write(b);
		k.interestOps(b.hasRemaining() ? SelectionKey.OP_WRITE : SelectionKey.OP_READ);
		b.compact();
	}

	static void selector() throws Exception {
		Selector sel = Selector.open();
		ServerSocketChannel l = ServerSocketChannel.open();

		l.bind(new InetSocketAddress(HERE, 0)).configureBlocking(false);
		l.register(sel, SelectionKey.OP_ACCEPT);
		System.out.println("at " + l.socket().getLocalPort());
		for (;;) {
			sel.select();
			for (Iterator<SelectionKey> i = sel.selectedKeys().iterator(); i.hasNext(); i.remove()) {
				SelectionKey k = i.next();

				if (k.isAcceptable())
					accept(sel, l);
				else
					move(k);
			}
		}
	}

	/* To a server that sends all back */
	static String echoed(int port, int bytes) throws Exception {
		byte[] out = new byte[bytes];

		new Random(1).nextBytes(out);
		try (Socket s = new Socket()) {
			s.connect(new InetSocketAddress(HERE, port), 10000);
			s.setSoTimeout(30000);
			Thread writer = new Thread(() -> {
				try {
					OutputStream o = s.getOutputStream();

					o.write(out);
					s.shutdownOutput();
				} catch (Exception e) {
					System.out.println(e);
				}
			});
			writer.start();
			byte[] in = s.getInputStream().readAllBytes();

			writer.join();
			return Arrays.equals(in, out) ? "same" : in.length + " bytes";
		}
	}

	static String datagrams(int port, int times) throws Exception {
		try (DatagramSocket s = new DatagramSocket(0, HERE)) {
			s.setSoTimeout(10000);
			for (int i = 0; i < times; i++) {
				byte[] out = ("datagram " + i).getBytes(), in = new byte[2000];
				DatagramPacket p = new DatagramPacket(in, in.length);

				s.send(new DatagramPacket(out, out.length, HERE, port));
				s.receive(p);
				if (!Arrays.equals(out, Arrays.copyOf(in, p.getLength())) || p.getPort() != port)
					return "another one";
			}
			return "same";
		}
	}

	static String refused() throws Exception {
		int port;

		try (ServerSocket l = new ServerSocket(0, 1, HERE)) {
			port = l.getLocalPort();
		}
		try (Socket s = new Socket(HERE, port)) {
			return "connected";
		} catch (java.net.ConnectException e) {
			return "refused";
		}
	}

	public static void main(String[] args) throws Exception {
		switch (args[0]) {
		case "url" -> System.out.println(url(args[1]));
		case "client" -> System.out.println(client(args[1], 8));
		case "threads" -> threads();
		case "selector" -> selector();
		case "echoed" -> System.out.println(echoed(Integer.parseInt(args[1]), 3000000));
		case "datagrams" -> System.out.println(datagrams(Integer.parseInt(args[1]), 100));
		case "refused" -> System.out.println(refused());
		default -> System.exit(2);
		}
		System.out.flush();
		System.exit(0);
	}
}
