// SPDX-License-Identifier: MIT OR GPL-2.0

// What run_static.sh has run: a program in Go, with its own resolver, and no idea of an agent.
package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

func must(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// The name is looked up by the name server that /etc/resolv.conf names.
func fetch(at, path string) {
	c, err := net.Dial("tcp", at)
	must(err)
	_, err = fmt.Fprintf(c, "GET %s HTTP/1.0\r\n\r\n", path)
	must(err)
	answer := bufio.NewReader(c)
	for line := ""; line != "\r\n"; {
		line, err = answer.ReadString('\n')
		must(err)
	}
	sum := sha256.New()
	_, err = io.Copy(sum, answer)
	must(err)
	fmt.Printf("%x\n", sum.Sum(nil))
}

func serve() {
	listener, err := net.Listen("tcp", ":0")
	must(err)
	fmt.Println("at", listener.Addr().(*net.TCPAddr).Port)
	for {
		c, err := listener.Accept()
		must(err)
		go func() {
			io.Copy(c, c)
			c.Close()
		}()
	}
}

func serveUDP() {
	c, err := net.ListenPacket("udp", ":0")
	must(err)
	fmt.Println("at", c.LocalAddr().(*net.UDPAddr).Port)
	buf := make([]byte, 65536)
	for {
		n, from, err := c.ReadFrom(buf)
		must(err)
		_, err = c.WriteTo(buf[:n], from)
		must(err)
	}
}

func echoed(at string) {
	c, err := net.Dial("udp", at)
	must(err)
	out, back := make([]byte, 1400), make([]byte, 65536)
	for i := 0; i < 100; i++ {
		rand.Read(out)
		for try := 0; ; try++ {
			_, err = c.Write(out)
			must(err)
			c.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
			n, err := c.Read(back)
			if err == nil && bytes.Equal(out, back[:n]) {
				break
			}
			if try == 40 {
				must(errors.New("lost"))
			}
		}
	}
	fmt.Println("same")
}

// The name server is the one at that address, whatever /etc/resolv.conf says.
func lookUp(server, name string) {
	resolver := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, server)
	}}
	found, err := resolver.LookupIP(context.Background(), "ip4", name)
	must(err)
	fmt.Println(found[0])
}

func refused() {
	_, err := net.Dial("tcp", "127.0.0.1:1")
	fmt.Println(errors.Is(err, syscall.ECONNREFUSED))
	_, err = net.LookupHost("no name.")
	var no *net.DNSError
	fmt.Println(errors.As(err, &no) && no.IsNotFound)
}

func main() {
	switch os.Args[1] {
	case "fetch":
		fetch(os.Args[2], os.Args[3])
	case "serve":
		serve()
	case "udp":
		serveUDP()
	case "echoed":
		echoed(os.Args[2])
	case "look-up":
		lookUp(os.Args[2], os.Args[3])
	case "refused":
		refused()
	}
}
