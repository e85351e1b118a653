# A small image of one binary, without a shell and without root: docker build -t syncwright:0.1.0 .
# With traces: docker build --build-arg FEATURES=otel -t syncwright:0.1.0 .
FROM rust:1.89-bookworm AS build
WORKDIR /source
COPY . .
ARG FEATURES=
RUN cargo build --release --locked --bin syncwright --features "$FEATURES"

# Of the system the binary needs libc, libm and libgcc_s, and the certificate authorities for hooks beyond the cluster.
FROM gcr.io/distroless/cc-debian12:nonroot
COPY --from=build /source/target/release/syncwright /usr/local/bin/syncwright
USER 65532:65532
WORKDIR /etc/syncwright
EXPOSE 8080 8081 8090 9443
ENTRYPOINT ["/usr/local/bin/syncwright"]
