# SPDX-License-Identifier: MIT OR GPL-2.0
"""git's smart protocol by HTTP: git_http.py ROOT [CERT KEY]; what it says is by git http-backend."""
import http.server
import os
import ssl
import subprocess
import sys

from program_says import say


class Git(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def ask(self, body):
        path, _, query = self.path.partition("?")
        env = dict(os.environ, GIT_PROJECT_ROOT=sys.argv[1], GIT_HTTP_EXPORT_ALL="1", PATH_INFO=path,
                   QUERY_STRING=query, REQUEST_METHOD=self.command, REMOTE_USER="someone",
                   CONTENT_TYPE=self.headers.get("Content-Type", ""), CONTENT_LENGTH=str(len(body)),
                   HTTP_CONTENT_ENCODING=self.headers.get("Content-Encoding", ""),
                   GIT_PROTOCOL=self.headers.get("Git-Protocol", ""))
        said = subprocess.run(["git", "http-backend"], env=env, input=body, stdout=subprocess.PIPE, check=True).stdout
        head, _, body = said.partition(b"\r\n\r\n")
        lines = [line.split(": ", 1) for line in head.decode().split("\r\n")]
        self.send_response(next((int(v.split()[0]) for k, v in lines if k == "Status"), 200))
        for key, value in lines:
            if key != "Status":
                self.send_header(key, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.ask(b"")

    def do_POST(self):
        self.ask(self.rfile.read(int(self.headers["Content-Length"])))

    def log_message(self, *args):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Git)
if len(sys.argv) > 2:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[2], sys.argv[3])
    server.socket = context.wrap_socket(server.socket, server_side=True)
say("at", server.server_address[1])
server.serve_forever()
