# docker build -t cosmati .             an image with the program:   docker run --rm cosmati info
# docker build --target test .          runs `make test`
# hadolint global ignore=DL3008
FROM debian:12 AS source
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates make && rm -rf /var/lib/apt/lists/*
WORKDIR /cosmati
COPY tools/setup.sh tools/setup.sh
RUN tools/setup.sh
COPY . .

FROM source AS test
RUN tools/setup.sh test && git config --global --add safe.directory /cosmati
RUN make test

FROM source AS build
RUN make install PREFIX=/opt/cosmati

FROM debian:12-slim AS program
RUN apt-get update && apt-get install -y --no-install-recommends \
      libboost-context1.74.0 libdnnl2 libgomp1 libopenblas0-pthread libpng16-16 libstdc++6 && rm -rf /var/lib/apt/lists/*
COPY --from=build /opt/cosmati /usr/local
WORKDIR /work
ENTRYPOINT ["cosmati"]
CMD ["--help"]
