. /tmp/e17/env.sh
n=$1
cat > /tmp/e17/t/sig.py <<'P'
import time,sys,signal
print("up",flush=True)
try:
    time.sleep(60)
except KeyboardInterrupt:
    print("saving checkpoint",flush=True); time.sleep(3); print("saved",flush=True); sys.exit(3)
P
