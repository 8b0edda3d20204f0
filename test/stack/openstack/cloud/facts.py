"""Prints the ids of what seed.py and the join have made, as shell assignments."""
from client import Project

demo = Project('demo', 'demo')
print(f'GAO_PROJECT_ID={demo.id}')
for variable, kind, name in (
        ('PUBLIC_NETWORK_ID', 'networks', 'public'), ('PUBLIC_SUBNET_ID', 'subnets', 'public-subnet'),
        ('DEMO_NETWORK_ID', 'networks', 'demo-net'), ('DEMO_SUBNET_ID', 'subnets', 'demo-subnet'),
        ('ROUTER_ID', 'routers', 'demo-router'),
        ('NODE_NETWORK_ID', 'networks', 'k8s-net'), ('NODE_SUBNET_ID', 'subnets', 'k8s-subnet')):
    found = demo.one(kind, 'name=' + name)
    if found:
        print(f'GAO_{variable}={found["id"]}')
