#!/bin/sh
# Prints Secrets with new credentials for NATS, for "kubectl apply -f -". Nothing is stored elsewhere, and every call creates new ones.
#
#   credentials.sh              passwords for trigger, reconciler, operator, reader and the subscriber "audit", and a certificate
#   credentials.sh passwords    the passwords alone
#   credentials.sh certificate  the certificate alone: an authority that exists for this one, whose key is thrown away
#
# It requires openssl.
set -eu
umask 077

what=${1:-all}
password() { openssl rand -hex 32; }

if [ "$what" = all ] || [ "$what" = passwords ]; then
  trigger=$(password) reconciler=$(password) operator=$(password) reader=$(password) audit=$(password)
  cat <<END
apiVersion: v1
kind: Secret
metadata: {name: nats-users, namespace: jobstream}
stringData: # a part of the server's configuration
  users.conf: |
    TRIGGER_PASSWORD: "$trigger"
    RECONCILER_PASSWORD: "$reconciler"
    OPERATOR_PASSWORD: "$operator"
    READER_PASSWORD: "$reader"
    AUDIT_PASSWORD: "$audit"
END
  for user in trigger reconciler operator reader audit; do
    eval "password=\$$user"
    cat <<END
---
apiVersion: v1
kind: Secret
metadata: {name: nats-user-$user, namespace: jobstream}
stringData:
  user: $user
  password: "$password"
END
  done
fi

if [ "$what" = all ] || [ "$what" = certificate ]; then
  dir=$(mktemp -d)
  trap 'rm -rf "$dir"' EXIT
  cd "$dir"
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 -subj /CN=jobstream-nats-ca \
    -addext basicConstraints=critical,CA:true -addext keyUsage=critical,keyCertSign -keyout ca.key -out ca.crt 2>/dev/null
  openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=nats -keyout tls.key -out tls.csr 2>/dev/null
  cat >extensions <<END
subjectAltName=DNS:nats,DNS:nats.jobstream,DNS:nats.jobstream.svc,DNS:nats.jobstream.svc.cluster.local,DNS:localhost,IP:127.0.0.1
extendedKeyUsage=serverAuth
END
  openssl x509 -req -in tls.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 3650 -extfile extensions -out tls.crt 2>/dev/null
  encoded() { openssl base64 -A -in "$1"; }
  [ "$what" = certificate ] || echo ---
  cat <<END
apiVersion: v1
kind: Secret
type: kubernetes.io/tls
metadata: {name: nats-tls, namespace: jobstream}
data:
  ca.crt: $(encoded ca.crt)
  tls.crt: $(encoded tls.crt)
  tls.key: $(encoded tls.key)
END
fi
